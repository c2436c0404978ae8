-- Published as a join of the counts with each window's greatest count. Here a count stays if it is among the greatest
-- ones; window and count are looked for as one text, since IN compares one value.
SELECT auction, num
FROM (
    SELECT auction, COUNT(*) AS num, window_start AS starttime
    FROM HOP(bid, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY window_start, auction
)
WHERE CAST(starttime AS STRING) || '/' || CAST(num AS STRING) IN (
    SELECT CAST(starttime AS STRING) || '/' || CAST(MAX(num) AS STRING)
    FROM (
        SELECT COUNT(*) AS num, window_start AS starttime
        FROM HOP(bid, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start
    )
    GROUP BY starttime
)
