#!/bin/bash
# sojourn popnet: the delay files that popnet itself writes for the same options, and what is said of wrong input.
. "$(dirname "$0")/lib.sh"
cat >mesh.bench <<END
0 0 0 2 2 9
0 0 1 2 2 9
0 1 0 2 2 9
0 2 0 2 2 9
1 0 0 0 2 3
1 2 2 0 0 1
1 1 1 1 1 4
2 0 2 2 2 9
500 2 1 0 1 2
END
cat >mesh.delay <<END
1 1 1 1 1 4
1 2 2 0 0 21
0 2 0 2 2 34
2 0 2 2 2 35
0 1 0 2 2 40
0 0 1 2 2 63
1 0 0 0 2 65
0 0 0 2 2 67
500 2 1 0 1 11
END
MESH="popnet -A 3 -c 2 -V 2 -B 2 -O 2 -F 3 -L 1000 -T 100000 -r 7"
run $MESH -I mesh.bench -R 0 -D out.txt --json out.json
exits 0
same out.txt mesh.delay
prints "9 of 9 arrived, 55 flits"
complains "-L: accepted, without effect"
json_is out.json schema sojourn.popnet/1
json_holds out.json "d['arrived'] == 9 and d['ending'] == 'all arrived' and d['last_arrival_cycle'] == 511"
run $MESH -r 9 -I mesh.bench -D other.txt -q # another seed, other choices
exits 0
! cmp -s other.txt mesh.delay || fail "the seed changes nothing"
sort -k1,1nr mesh.bench >backwards.bench # sorted again, but packets of equal time in another order
run $MESH -I backwards.bench -D back.txt
exits 0
complains "not in order of time: sorted"

# As LEGOSim's YAML files call it: options glued or apart, -R twice, -T beyond 64 bits, -P last.
cat >ring.gv <<END
graph ring {
    edge[weight=1]
    node[pipeline_stage_delay=1]
    // twelve routers in a ring, one chord
    0--1--2--3--4--5--6--7--8--9--10--11--0
    0--6 [weight=3]
}
END
cat >proto.bench <<END
0 10 0 3 5 0
0 0 11 6 5 1
4 400 2 8 3 65536
6 6 9 4 7 131074
6 0 1 10 20 262144
30 31 5 5 2 0
900 900 7 2 1 524288
END
cat >proto.delay <<'END'
0 11 6 1 2 4 20 
0 0 3 0 2 4 25 
30 5 5 0 2 1 2 
6 1 10 262144 4 19 33 0 7 
6 9 4 131074 4 6 27 0 19 
4 2 8 65536 4 2 34 0 31 
900 7 2 524288 4 0 13 0 14 
END
mkdir run
cd run || exit 1
run popnet -A12 -c 1 -V 2 -B 4 -O 4 -F 4 -L 1000 -T 1000000000000000000000 -r 1 -I ../proto.bench -R 4 -G ../ring.gv \
  -R 4 -D ../proto.out -P
cd ..
exits 0
same proto.out proto.delay
run popnet -A 12 -c 1 -V 2 -B 4 -O 4 -T 10000000 -I proto.bench -G ring.gv -P # -R 4 because of -G, -D by default
exits 0
same delayInfo.txt proto.delay
complains "-R: not given: -R 4"
run popnet -A 99 -c 1 -V 2 -B 4 -O 4 -I proto.bench -R 4 -G ring.gv -D o.txt -P
exits 0
complains "12 routers: these count"

# A limit ends a run; what had arrived is written.
run $MESH -I mesh.bench -T 40 -D cut.txt
exits 0
complains "ended the run"
head -5 mesh.delay >cut.delay # popnet looks at the clock before it takes an event
same cut.txt cut.delay

# Wrong input: exit 2, where and what, nothing written.
refused() { # message, arguments of popnet
  local message=$1
  shift
  rm -f no.txt
  run popnet -D no.txt "$@"
  exits 2
  complains "$message"
  [[ ! -e no.txt ]] || fail "wrote delays in spite of the error"
}
: >empty.bench
refused "empty.bench: holds no packets" -A 3 -I empty.bench
refused "nowhere.bench: no such file" -A 3 -I nowhere.bench
printf '0 0 0 1 1 5\n1 0 3 1 1 5\n2 0 0 1 1\n3 0 0 1 1 0\n4 0 0 1 1 1e30\n' >bad.bench
refused "bad.bench:2:5: source_y: '3': out of range" -A 3 -I bad.bench
complains "bad.bench:3:10: flits: 5 fields, expected 6; write: time source_x"
complains "bad.bench:4:11: flits: '0'"
complains "bad.bench:5:11: flits: '1e30'"
refused "proto.bench:1:11: .*: 6 fields, expected 8|: .*6 fields, expected 8" -A 3 -I proto.bench -P
refused "-I: missing" -A 3
refused "-R: 2: not modelled" -R 2 -I mesh.bench
refused "-G: missing" -R 4 -I mesh.bench
refused "-c: 3 dimensions" -c 3 -I mesh.bench
refused "-V: '0' is out of range" -V 0 -I mesh.bench
refused "-B: 'deep' is not a whole number" -B deep -I mesh.bench
refused "-X: unknown option" -X 3
printf 'graph g {\n 0 -- 1\n 2 -- 3 [weight=fast]\n}\n' >bad.gv
refused "bad.gv:3:17: weight: 'fast'" -R 4 -G bad.gv -I proto.bench -P
printf 'graph g {\n edge[weight=1] node[pipeline_stage_delay=1] 0 -- 1\n 2 -- 3\n}\n' >parts.gv
printf '0 0 0 3 1 0\n' >parts.bench
refused "packet 1: no way leads from 0 to 3" -R 4 -G parts.gv -I parts.bench -P
cp mesh.bench keep.bench
run $MESH -I mesh.bench -D mesh.bench
exits 2
same mesh.bench keep.bench

# Packets that wait for one another for ever.
printf 'graph g { edge[weight=1] node[pipeline_stage_delay=1] 0--1--2--3--4--0 }\n' >circle.gv
printf '0 0 2 40\n0 1 3 40\n0 2 4 40\n0 3 0 40\n0 4 1 40\n' >circle.bench
run popnet -V 1 -B 2 -T 1e12 -R 4 -G circle.gv -I circle.bench -D circle.txt
exits 1
complains "5 packets never arrive"

# Validation of a folder of such files, with and without settings.
mkdir ref
cp mesh.bench ref/three.bench
cp mesh.delay ref/three.delay.txt
printf 'name,k,vcs,in_buffer,out_buffer,flit_size,seed\nthree,3,2,2,2,3,7\n' >ref/settings.csv
run validate network --reference ref --json val.json
exits 0
json_holds val.json "len(d['cases']) == 11 and all(c['rel_error'] == 0 for c in d['cases'])"
json_holds val.json "d['summary']['packet']['n'] == 9 and 'makespan' in d['summary'] and 'plat_avg' in d['summary']"
rm ref/three.delay.txt
run validate network --reference ref
exits 2
complains "has no recorded delays"
echo ok
