package store

// Only this file knows how SQL reads a snap.Audience: the kind is in the three low bits, the
// subject above them. The constants up to isGroupOrRecipients are appended to an audience. The
// constants from membersOf on are appended to the identifier of an organization or a group and
// convert it to an audience.
const (
	kindOf    = ` & 7`
	subjectOf = ` >> 3`

	isUser              = kindOf + ` = 0`
	isGroup             = kindOf + ` = 3`
	isRecipients        = kindOf + ` = 4`
	isNotRecipients     = kindOf + ` <> 4`
	isUserOrGroup       = kindOf + ` IN (0, 3)`
	isGroupOrRecipients = kindOf + ` IN (3, 4)`

	// isGroupMembership selects the rows of the table membership that are about groups. The column
	// kind repeats the kind of the row's audience.
	isGroupMembership = `kind = 3`

	membersOf    = ` * 8 + 2`
	groupOf      = ` * 8 + 3`
	recipientsOf = ` * 8 + 4`
)

// callersGroups selects the rows m of membership that hold the groups of the principal $1.
const callersGroups = `m.principal = $1 AND m.` + isGroupMembership
