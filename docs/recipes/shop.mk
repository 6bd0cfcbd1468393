# Include shop.mk in your Makefile. Sign in once with `snapcli login`.
SHOP_DEV ?= postgres://localhost/shop_dev

.PHONY: db db-list
db: ## load the newest masked shop into your own database
	@snapcli targets show shop >/dev/null 2>&1 || snapcli targets add shop --destination $(SHOP_DEV)
	snapcli pull shop --cloud --type sanitized
	snapcli load shop --type sanitized --yes

db-list: ## list the snapshots of shop
	@snapcli cloud snapshots --target shop
