SELECT window_end, src, SUM(bytes) AS bytes, COUNT(*) AS packets
FROM TUMBLE(packet, INTERVAL '5' MINUTE)
WHERE port = 80
GROUP BY window_end, src
