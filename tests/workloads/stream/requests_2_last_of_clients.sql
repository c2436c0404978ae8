SELECT COUNT(*)
FROM Requests S
    [Partition By S.client_id
     Rows 10 Preceding
     Where S.domain = 'stanford.edu']
WHERE S.URL LIKE 'http://cs.stanford.edu/%'
