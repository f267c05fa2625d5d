#!/bin/bash
# validate network: a folder with some of the reference files; a wrong one is named with file and line.
. "$(dirname "$0")/lib.sh"
mkdir -p ref/traces bad empty
cat >ref/zero_load.csv <<END
k,num_vcs,vc_buf_size,speculative,packet_size,distance,nlat_min,nlat_median,packets,formula
4,1,4,1,5,3,19,19,9,19
4,2,8,0,5,6,34,34,9,34
END
cat >ref/traces/batch_4x4_vc1_uniform_L5_ppn1.csv <<END
id,src,dst,flits,ready_cycle,inject_cycle,head_arrive_cycle,tail_arrive_cycle,routers
0,0,3,5,0,0,14,19,4
END
cat >ref/batch.csv <<END
k,nodes,num_vcs,vc_buf_size,speculative,traffic,packet_size,packets_per_node,total_flits,seed,makespan_cycles,nlat_avg
2,4,1,4,1,transpose,1,1,4,1,12,8
END
run validate network --reference ref --json out.json
exits 0
prints "packet +1 +0.000%"
json_is out.json schema sojourn.validate/1
json_holds out.json "len(d['cases']) == 7 and all(c['rel_error'] == 0 for c in d['cases'])"
json_holds out.json "d['summary']['packet'] == {'n': 1, 'median_abs': 0, 'p95_abs': 0, 'max_abs': 0}"
sed 's/4,1,4,1,5,3/99,1,4,1,5,3/' ref/zero_load.csv >bad/zero_load.csv
run validate network --reference bad
exits 2
complains "bad/zero_load.csv:2:1: k: '99'"
run validate network --reference empty
exits 2
complains "holds no file"
run validate network --reference nowhere
exits 2
complains "not a folder"
echo ok
