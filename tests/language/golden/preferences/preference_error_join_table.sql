SELECT * FROM store1 a JOIN planes p ON a.itemno = p.flight WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno)
