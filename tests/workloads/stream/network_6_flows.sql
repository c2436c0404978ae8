SELECT src, dst, window_start, window_end, COUNT(*) AS packets, SUM(bytes) AS bytes
FROM SESSION(packet PARTITION BY src, dst, INTERVAL '2' MINUTE)
GROUP BY src, dst, window_start, window_end
