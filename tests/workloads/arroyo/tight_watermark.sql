-- Published through a view, as GROUP BY TUMBLE(INTERVAL '1' hour), with a watermark as tight as can be that moves once
-- a batch; here rows may be an hour late.
WITH group_by_view AS (
    SELECT window_end AS "timestamp", COUNT(*) AS "count"
    FROM TUMBLE(cars, INTERVAL '1' HOUR)
    GROUP BY 1
)
SELECT "timestamp", "count" FROM group_by_view
