SELECT COUNT(*) FROM flights GROUP BY window(ts, '5 minutes')
