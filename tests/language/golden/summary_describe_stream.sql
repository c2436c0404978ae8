DESCRIBE summary
