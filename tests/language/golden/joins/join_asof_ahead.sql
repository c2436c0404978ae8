SELECT 1 FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND f.ts < w.ts
