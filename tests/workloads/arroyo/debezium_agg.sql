SELECT
    CONCAT('p_', product_name) AS id, COUNT(*) AS c, COUNT(DISTINCT customer_name) AS d,
    SUM(quantity + 5) + 10 AS q
FROM debezium_source
GROUP BY CONCAT('p_', product_name)
