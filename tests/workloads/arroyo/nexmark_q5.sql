SELECT counts.auction, counts.num
FROM (
    SELECT auction, COUNT(*) AS num, window_start
    FROM HOP(bids, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start
) AS counts
JOIN (
    SELECT MAX(num) AS maxn, window_start
    FROM (
        SELECT COUNT(*) AS num, window_start
        FROM HOP(bids, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start
    )
    GROUP BY window_start
) AS best
ON counts.window_start = best.window_start AND counts.num >= best.maxn
