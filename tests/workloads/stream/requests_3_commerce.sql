SELECT T.URL
FROM (
    SELECT client_id, URL
    FROM Requests S, Domains R
    WHERE S.domain = R.domain
      AND R.type = 'commerce'
) T SAMPLE(10)
WHERE T.client_id BETWEEN 1 AND 1000
