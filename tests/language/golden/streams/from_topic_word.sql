CREATE STREAM orders FROM 'orders'
