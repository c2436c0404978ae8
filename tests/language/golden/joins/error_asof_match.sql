SELECT 1 FROM flights f ASOF JOIN weather w MATCH_CONDITION (f.ts >= w.ts) ON f.dest = w.dest
