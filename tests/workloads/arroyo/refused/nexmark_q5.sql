SELECT bids.auction, bids.num
FROM (
    SELECT auction, COUNT(*) AS num, window_start
    FROM HOP(impulse, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start
) AS bids
JOIN (
    SELECT MAX(num) AS maxn, window_start
    FROM (
        SELECT COUNT(*) AS num, window_start
        FROM HOP(impulse, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start
    )
    GROUP BY window_start
) AS best
ON bids.window_start = best.window_start AND bids.num >= best.maxn
