module ahead.snap

go 1.26.0
