SELECT 1e0 * ours / GREATEST(every, 1) AS share
FROM (
    SELECT COUNT(*) AS ours FROM packet [RANGE 1 HOUR] c JOIN backbone [RANGE 1 HOUR] b ON b.id = c.id
)
CROSS JOIN (SELECT COUNT(*) AS every FROM backbone [RANGE 1 HOUR])
