SELECT 1 FROM flights f ASOF JOIN weather w ON f.ts >= w.ts AND f.delay <> w.wind
