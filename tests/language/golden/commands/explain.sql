EXPLAIN SELECT carrier FROM late WHERE twice > 30;
