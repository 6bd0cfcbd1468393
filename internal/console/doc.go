// Package console has the pages of the service for people in a browser: the list of snapshots and
// the page of each at {public_url}/snapshots, for everybody who is signed in, and the organization
// at {public_url}/console, for its owners and admins.
//
// A page is made from answers of the service's own API. [inside] sends the requests to the API's
// handler in the same process, with the cookie of the browser that asks for the page. So a page
// cannot show or change anything that the API would refuse: authentication, the access rule, rate
// limits and the audit log apply to each request. The package does not import the store.
//
// People who are not owners or admins get the same answer for the console as for an address that
// does not exist. A snapshot that a person may not see gets the page of one that does not exist.
// People who are signed out are sent to the sign-in page. Every page works without JavaScript. A
// form is sent to the address of its page, passes [auth.Forms.Check], and answers 303 to the page,
// whose parameter "done" names the success to announce. With JavaScript, the page of a snapshot
// copies its link, and the forms of its share box act at once: the request has the header Fragment,
// and the answer is the section about shares.
package console
