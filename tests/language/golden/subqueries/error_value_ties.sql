SELECT carrier, (SELECT wind FROM weather w WHERE w.dest = f.dest ORDER BY ts FETCH FIRST 1 ROW WITH TIES) FROM flights f
