SELECT customer, COUNT(*) AS purchases, SUM(total) AS spent
FROM {{ source('broker', 'purchases') }}
GROUP BY customer
