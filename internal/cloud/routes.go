package cloud

import (
	"github.com/danielgtaylor/huma/v2"

	"snap"
	"snap/api"
)

// routes registers the whole API. A route on both mounts accepts API keys below /api/v1/agents, and
// access tokens and browser sessions below /api/v1.
//
// Sources: SPEC 4.1, 4.2 and 4.3.
func (s *Service) routes(root huma.API) {
	both := huma.NewGroup(root, api.MountAgent, api.MountUser)
	user := huma.NewGroup(root, api.MountUser)

	register(s, both, route{"list-snapshots", "GET /snapshots", snap.ActView, onNothing,
		"List the snapshots the caller may see, newest first"}, s.listSnapshots)
	register(s, both, route{"count-snapshots", "GET /snapshots/count", snap.ActView, onNothing,
		"Count the snapshots that the listing has on all its pages"}, s.countSnapshots)
	register(s, both, route{"get-snapshot", "GET /snapshots/{id}", snap.ActView, onSnapshot,
		"Get one snapshot, with the actions that the caller may take on it"}, s.getSnapshot)
	register(s, both, route{"delete-snapshot", "DELETE /snapshots/{id}", snap.ActDelete, onSnapshot,
		"Delete a snapshot and its bytes"}, s.deleteSnapshot)
	register(s, both, route{"pull-snapshot", "POST /snapshots/{id}/pull", snap.ActPull, onSnapshot,
		"Get a presigned URL of the snapshot's file"}, s.pullSnapshot)
	register(s, both, route{"pull-delta", "POST /snapshots/{id}/pull-delta", snap.ActPull, onSnapshot,
		"Get a presigned URL of the delta between a snapshot that the caller already has and this one"}, s.pullDelta)
	register(s, both, route{"pulled-snapshot", "POST /snapshots/{id}/pulled", snap.ActPull, onSnapshot,
		"Record in the audit log that a pull is complete"}, s.pulled)

	register(s, both, route{"get-card", "GET /snapshots/{id}/card", snap.ActView, onSnapshot,
		"Get a page of the snapshot's card: its tables, its columns, and how the snapshot was made"}, s.getCard)
	register(s, both, route{"put-card", "POST /snapshots/{id}/card", snap.ActPush, onSnapshot,
		"Store the card of a snapshot that the caller pushed or may describe"}, s.putCard)
	register(s, both, route{"remove-card", "DELETE /snapshots/{id}/card", snap.ActPush, onSnapshot,
		"Remove the card of a snapshot that the caller pushed or may describe"}, s.removeCard)
	register(s, both, route{"card-changes", "GET /snapshots/{id}/changes", snap.ActView, onSnapshot,
		"Compare the snapshot's card with that of the previous snapshot"}, s.cardChanges)
	register(s, both, route{"describe-snapshot", "POST /snapshots/{id}/about", snap.ActDescribe, onSnapshot,
		"Replace the snapshot's description and labels"}, s.describe)
	register(s, both, route{"list-pulls", "GET /snapshots/{id}/pulls", snap.ActExplain, onSnapshot,
		"List who pulled the snapshot, how often and when last"}, s.pullCounts)

	register(s, both, route{"begin-push", "POST /snapshots", snap.ActPush, onNothing,
		"Begin a push, or resume one"}, s.beginPush)
	register(s, both, route{"sign-parts", "POST /snapshots/{id}/parts", snap.ActPush, onUpload,
		"Presign uploads of parts, or list the parts that have arrived"}, s.signParts)
	register(s, both, route{"push-delta", "POST /snapshots/{id}/delta", snap.ActPush, onUpload,
		"Get a presigned URL to upload a delta instead of the whole file"}, s.pushDelta)
	register(s, both, route{"complete-push", "POST /snapshots/{id}/complete", snap.ActPush, onPush,
		"Complete a push: verify size and checksum, then make the snapshot visible"}, s.completePush)

	register(s, both, route{"list-uploads", "GET /uploads", snap.ActPush, onNothing,
		"List the caller's unfinished pushes, newest first"}, s.listUploads)
	register(s, both, route{"abort-upload", "DELETE /uploads/{id}", snap.ActPush, onUpload,
		"End an unfinished push and remove its bytes"}, s.abortUpload)

	register(s, both, route{"share", "POST /snapshots/{id}/share", snap.ActShare, onSnapshot,
		"Share org-wide"}, s.share)
	register(s, both, route{"unshare", "DELETE /snapshots/{id}/share", snap.ActShare, onSnapshot,
		"End the org-wide share immediately"}, s.unshare)
	register(s, both, route{"share-group", "POST /snapshots/{id}/share-group", snap.ActShare, onSnapshot,
		"Share with an SSO group"}, s.shareGroup)
	register(s, both, route{"unshare-group", "DELETE /snapshots/{id}/share-group/{groupId}", snap.ActShare, onSnapshot,
		"End a group share immediately"}, s.unshareGroup)
	register(s, both, route{"share-with", "POST /snapshots/{id}/shares", snap.ActShare, onSnapshot,
		"Share with several recipients at once: all of them, or none"}, s.shares)
	register(s, both, route{"unshare-with", "POST /snapshots/{id}/unshare", snap.ActShare, onSnapshot,
		"End several shares or every share; if one cannot be ended, none is"}, s.endShares)
	register(s, both, route{"bulk-change", "POST /bulk", "", onNothing,
		"Share, unshare or delete several snapshots"}, s.bulk)
	register(s, both, route{"list-group-shares", "GET /snapshots/{id}/group-shares", snap.ActListGroupShares,
		onSnapshot, "List the snapshot's group shares"}, s.groupShares)
	register(s, both, route{"explain-access", "GET /snapshots/{id}/access", snap.ActExplain, onSnapshot,
		"Explain who can see the snapshot, and why one user can or cannot"}, s.explain)
	register(s, both, route{"why-visible", "GET /snapshots/{id}/why", snap.ActView, onSnapshot,
		"List the shares and roles through which the caller can see the snapshot"}, s.why)
	register(s, both, route{"newcomers", "GET /snapshots/{id}/newcomers", snap.ActShare, onSnapshot,
		"Count the people who would gain access through a share, and list up to 50"}, s.newcomers)
	register(s, both, route{"share-org", "POST /snapshots/{id}/share-org", snap.ActShareOrg, onSnapshot,
		"Create or update a cross-organization share"}, s.shareOrg)
	register(s, both, route{"unshare-org", "DELETE /snapshots/{id}/share-org/{slug}", snap.ActShareOrg, onSnapshot,
		"End a cross-organization share immediately"}, s.unshareOrg)
	register(s, both, route{"list-org-shares", "GET /snapshots/{id}/org-shares", snap.ActShareOrg, onSnapshot,
		"List the snapshot's live and declined cross-organization shares"}, s.orgShares)

	register(s, both, route{"request-access", "POST /access-requests", "", onNothing,
		"Ask for access to a snapshot; the response does not reveal whether it exists"}, s.requestAccess)
	register(s, both, route{"list-access-requests", "GET /access-requests", "", onNothing,
		"List the requests for access that the caller may answer, or the caller's own"}, s.listAccessRequests)
	register(s, both, route{"withdraw-access-request", "DELETE /access-requests/{id}", "", onNothing,
		"Withdraw one of the caller's requests for access"}, s.withdrawAccessRequest)
	register(s, both, route{"refuse-access", "POST /access-requests/{id}/refuse", "", onNothing,
		"Refuse a request for access; to grant one, share the snapshot"}, s.refuseAccess)
	register(s, both, route{"list-groups", "GET /org/sso/groups", snap.ActReadOrganization, onNothing,
		"List the organization's SSO groups"}, s.listGroups)
	register(s, both, route{"list-members", "GET /org/members", snap.ActReadOrganization, onNothing,
		"List the organization's members"}, s.listMembers)
	register(s, both, route{"list-certificate-keys", "GET /org/certificate-keys", snap.ActReadOrganization, onNothing,
		"List the keys whose certificates the organization accepts, and the revoked keys"}, s.listCertificateKeys)
	register(s, both, route{"add-certificate-key", "POST /org/certificate-keys", snap.ActAdminister, onNothing,
		"Register a public key; certificates that it signed are then valid"}, s.addCertificateKey)
	register(s, both, route{"revoke-certificate-key", "DELETE /org/certificate-keys/{id}", snap.ActAdminister,
		onNothing, "Revoke a key: its certificates are refused from then on"}, s.revokeCertificateKey)
	register(s, both, route{"me", "GET /me", "", onNothing,
		"Get the caller: user, role, groups and credential"}, s.me)

	register(s, both, route{"list-people", "GET /org/people", snap.ActAdminister, onNothing,
		"List the organization's accounts, with their last use and their storage"}, s.listPeople)
	register(s, both, route{"sign-out-person", "POST /org/people/{id}/sign-out", snap.ActAdminister, onNothing,
		"Sign a person out of every device and browser immediately"}, s.signOutPerson)
	register(s, both, route{"list-live-shares", "GET /org/shares", snap.ActAdminister, onNothing,
		"List the organization's live shares with other organizations or with one group"}, s.listLiveShares)
	register(s, both, route{"storage", "GET /org/storage", snap.ActAdminister, onNothing,
		"Get the storage that the organization uses for each target, and its quotas"}, s.storage)
	register(s, both, route{"overview", "GET /org/overview", snap.ActAdminister, onNothing,
		"Summarize the organization's events by day"}, s.overview)

	register(s, both, route{"list-audit", "GET /audit", snap.ActAdminister, onNothing,
		"List the organization's audit log, newest first"}, s.listAudit)
	register(s, both, route{"audience-then", "GET /audit/access", snap.ActAdminister, onNothing,
		"List who could see a snapshot at a time in the past"}, s.audienceThen)
	register(s, both, route{"audit-checkpoint", "GET /audit/checkpoint", snap.ActAdminister, onNothing,
		"Get a signed checkpoint of the audit log"}, s.auditCheckpoint)
	register(s, both, route{"audit-records", "GET /audit/records", snap.ActAdminister, onNothing,
		"List lines of the audit log exactly as they were hashed, oldest first"}, s.auditRecords)
	register(s, both, route{"audit-inclusion", "GET /audit/inclusion", snap.ActAdminister, onNothing,
		"Prove that a line is in the audit log"}, s.auditInclusion)
	register(s, both, route{"audit-growth", "GET /audit/growth", snap.ActAdminister, onNothing,
		"Prove that the audit log has only grown since an older checkpoint"}, s.auditGrowth)
	register(s, both, route{"share-receipt", "GET /snapshots/{id}/receipt", snap.ActView, onSnapshot,
		"Get the proof that another organization shared the snapshot"}, s.receipt)

	register(s, both, route{"decline", "DELETE /snapshots/{id}/received", snap.ActDecline, onSnapshot,
		"Decline a snapshot that another organization shared"}, s.decline)
	register(s, both, route{"list-channels", "GET /channels", snap.ActAdminister, onNothing,
		"List the channels"}, s.listChannels)
	register(s, both, route{"create-channel", "POST /channels", snap.ActAdminister, onNothing,
		"Create a channel: share the newest snapshot of a target from now on"}, s.createChannel)
	register(s, both, route{"delete-channel", "DELETE /channels/{id}", snap.ActAdminister, onNothing,
		"Delete a channel and the shares it made"}, s.deleteChannel)
	register(s, both, route{"list-retention", "GET /retention", snap.ActAdminister, onNothing,
		"List the retention rules"}, s.listRetention)
	register(s, both, route{"set-retention", "POST /retention", snap.ActAdminister, onNothing,
		"Set how long a target's snapshots are kept"}, s.setRetention)
	register(s, both, route{"delete-retention", "DELETE /retention/{target}", snap.ActAdminister, onNothing,
		"Delete a target's retention rule; its snapshots are then kept indefinitely"}, s.deleteRetention)
	register(s, both, route{"run-retention", "POST /retention/run", snap.ActAdminister, onNothing,
		"Apply the retention rules now, or list what they would delete"}, s.runRetention)
	register(s, both, route{"list-webhooks", "GET /webhooks", snap.ActAdminister, onNothing,
		"List the webhooks"}, s.listWebhooks)
	register(s, both, route{"create-webhook", "POST /webhooks", snap.ActAdminister, onNothing,
		"Create a webhook; only this response contains its secret"}, s.createWebhook)
	register(s, both, route{"delete-webhook", "DELETE /webhooks/{id}", snap.ActAdminister, onNothing,
		"Remove a webhook"}, s.deleteWebhook)
	register(s, both, route{"enable-webhook", "POST /webhooks/{id}/enable", snap.ActAdminister, onNothing,
		"Enable a webhook that was disabled or is paused"}, s.enableWebhook)
	register(s, both, route{"rotate-webhook-secret", "POST /webhooks/{id}/rotate", snap.ActAdminister, onNothing,
		"Replace the secret of a webhook; only this response contains the new one"}, s.rotateWebhook)
	register(s, both, route{"test-webhook", "POST /webhooks/{id}/test", snap.ActAdminister, onNothing,
		"Send a test message to a webhook"}, s.testWebhook)
	register(s, both, route{"replay-webhook", "POST /webhooks/{id}/replay", snap.ActAdminister, onNothing,
		"Resend past messages of a webhook"}, s.replayWebhook)
	register(s, both, route{"list-deliveries", "GET /webhooks/{id}/deliveries", snap.ActAdminister, onNothing,
		"List the newest deliveries of a webhook"}, s.listDeliveries)

	register(s, user, route{"list-keys", "GET /keys", "", onNothing,
		"List the caller's API keys or, for owners and admins, those of the organization"}, s.listKeys)
	register(s, user, route{"create-key", "POST /keys", "", onNothing,
		"Create an API key; only this response contains its secret"}, s.createKey)
	register(s, user, route{"revoke-key", "DELETE /keys/{id}", "", onNothing,
		"Revoke an API key immediately"}, s.revokeKey)
	register(s, user, route{"list-sessions", "GET /sessions", "", onNothing,
		"List the caller's signed-in devices and browsers or, for owners and admins, everybody's"}, s.listSessions)
	register(s, user, route{"end-session", "DELETE /sessions/{id}", "", onNothing,
		"Sign one device or browser out immediately"}, s.endSession)

	huma.Register(root, huma.Operation{
		OperationID: "auth-config", Method: "GET", Path: api.PathAuthConfig,
		Summary: "Get the auth service and client ID to sign in with",
	}, s.authConfig)
}
