ALTER QUERY 'dwjwny6nqpkzyckg34lshcejnhsmkayb' SELECT 1
