ALTER QUERY 'dwjwny6nqpkzyckg34lshcejnhsmkayb' AS SELECT carrier FROM late WHERE twice > 30;
