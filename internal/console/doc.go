// Package console has the pages of the service at {public_url}/console: the view of an organization
// for its owners and admins, in a browser.
//
// A page is made from answers of the service's own API. [inside] sends the requests to the API's
// handler in the same process, with the cookie of the browser that asks for the page. So a page
// cannot show or change anything that the API would refuse: authentication, the access rule, rates
// and the audit log apply to each of them. The package does not import the store.
//
// People who are not owners or admins get the same answer as for an address that does not exist.
// People who are signed out are sent to the sign-in page. Every page works without script. A form is
// sent to the address of its page, passes [auth.Forms.Check], and answers 303 to the page, whose
// parameter "done" names the success to announce.
package console
