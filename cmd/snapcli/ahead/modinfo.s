// An assembly file lets ahead.go declare modinfo without a body.
