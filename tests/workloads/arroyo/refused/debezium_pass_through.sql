CREATE TABLE debezium_source (
    id INT PRIMARY KEY, customer_name TEXT, product_name TEXT, quantity INTEGER, price FLOAT, order_date TIMESTAMP,
    status TEXT
) WITH (topic = 'debezium_source', format = 'debezium_json')
