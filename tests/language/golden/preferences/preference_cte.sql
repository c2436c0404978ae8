WITH preference AS (SELECT * FROM store1) SELECT * FROM preference WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
