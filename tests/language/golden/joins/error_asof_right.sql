SELECT 1 FROM flights f ASOF RIGHT JOIN weather w ON f.ts >= w.ts
