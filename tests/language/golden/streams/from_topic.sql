CREATE STREAM orders FROM TOPIC 'shop.orders'
