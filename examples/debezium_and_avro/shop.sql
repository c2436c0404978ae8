CREATE TABLE shop_customers FROM TOPIC 'shop.public.customers';
CREATE STREAM shop_orders FROM TOPIC 'shop.orders' WITH (timestamp = 'placed_at', idle_timeout = '1 second');
CREATE QUERY shop_cities AS
    SELECT c.city, COUNT(*) AS orders, SUM(o.total) AS total
    FROM shop_orders o JOIN shop_customers c ON c.id = o.customer_id
    WHERE NOT o.delivery_express
    GROUP BY c.city;
