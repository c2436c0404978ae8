SELECT window_end, MAX(price) AS price FROM TUMBLE(bid, INTERVAL '10' MINUTE) GROUP BY window_end
