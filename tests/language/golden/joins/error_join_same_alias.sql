SELECT 1 FROM flights a JOIN weather b ON a.dest = b.dest JOIN planes a ON TRUE
