-- Published as a join of the bids with each window's greatest price, over an interval closed at both ends; no bid of
-- the sample is on a boundary. Here window and price are looked for as one text, since IN compares one value.
SELECT auction, price, bidder, date_time
FROM TUMBLE(bid, INTERVAL '10' SECOND)
WHERE CAST(window_end AS STRING) || '/' || CAST(price AS STRING) IN (
    SELECT CAST(window_end AS STRING) || '/' || CAST(MAX(price) AS STRING)
    FROM TUMBLE(bid, INTERVAL '10' SECOND)
    GROUP BY window_end
)
