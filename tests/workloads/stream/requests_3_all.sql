-- The third without its SAMPLE(10), so that all rows are compared.
SELECT T.URL
FROM (
    SELECT client_id, URL
    FROM Requests S, Domains R
    WHERE S.domain = R.domain
      AND R.type = 'commerce'
) T
WHERE T.client_id BETWEEN 1 AND 1000
