#!/bin/bash
# validate memory: a folder of one system and two rows; a wrong cell is named with file, line and column.
. "$(dirname "$0")/lib.sh"
mkdir -p ref
cat >ref/systems.csv <<END
system,simulator,memory,channels_in_model,peak_GBps,transaction_bytes,tCK_ns,CL,RCD_read,RP,RAS,RC,burst_cycles,CCD_S,CCD_L,RRD_S,RRD_L,FAW,RFC,REFI,bank_groups,banks_per_group,page_bytes,capacity_GiB,read_queue_per_channel,scheduler,page_policy,refresh,channel_interleave_bytes
mine,made up,one HBM2 pseudo-channel,1,14.401,32,1.111,13,13,13,31,44,2,2,4,4,4,14,145,3511,4,4,1024,0.25,32,FR-FCFS,open,all-bank,-
END
cat >ref/measurements.csv <<END
system,mapping,pattern,streams,base_align,bytes_per_stream,turn_bytes,chunk_bytes,offered_load,seed,requests_64B,efficiency,saturated,lat_avg_ns
mine,page_contiguous,stream,2,aligned,1048576,64,,,1,32768,0.7471,,114.98
mine,page_contiguous,idle_rowhit,,,,,,,1,10000,0.0280,,25.45
END
run validate memory --reference ref --json out.json
exits 0
prints "mine +stream_efficiency +3 points +1 of 1"
json_is out.json schema sojourn.validate/1
json_holds out.json "[c['quantity'] for c in d['cases']] == ['stream_efficiency', 'idle_latency']"
json_holds out.json "abs(d['cases'][0]['rel_error']) < 0.001 and d['summary']['idle_latency']['n'] == 1"
sed -i 's/,aligned,/,sideways,/; s/mine,page_contiguous,idle/other,page_contiguous,idle/' ref/measurements.csv
run validate memory --reference ref
exits 2
complains "ref/measurements.csv:2:31: base_align: 'sideways'.*known: aligned"
complains "ref/measurements.csv:3:1: system: 'other'"
sed -i 's/,1.111,/,fast,/' ref/systems.csv
run validate memory --reference ref
exits 2
complains "ref/systems.csv:2:50: tCK_ns: 'fast'"
rm ref/systems.csv
run validate memory --reference ref
exits 2
complains "holds no systems.csv"
run describe memories hbm2-1800 --json mem.json
exits 0
prints "peak: +460.8 GB/s"
json_is mem.json memories.0.name hbm2-1800
run describe memory hbm9
exits 2
complains "there is no memory 'hbm9'.*known: ddr4-3200"
echo ok
