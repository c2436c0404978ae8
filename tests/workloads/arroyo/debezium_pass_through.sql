-- Published as SELECT *, and with the date in whole seconds.
SELECT id, customer_name, product_name, quantity, price, EXTRACT(EPOCH FROM order_date) AS order_date, status
FROM debezium_source
