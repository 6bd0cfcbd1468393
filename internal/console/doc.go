// Package console serves the service's web pages for people who are signed in: the list of
// snapshots and a page for each of them at {public_url}/snapshots, and the console at
// {public_url}/console, where owners and admins manage their organization.
//
// The pages get all data from the service's own API. [transport] passes their requests to the API's
// handler in the same process, with the cookie of the browser that requested the page. So a page
// cannot show or change anything that the API would refuse: authentication, the access rule, rate
// limits and the audit log apply to each request. The package does not import the store.
//
// People who are signed out are sent to the sign-in page. Below /console, members and viewers get
// the response for an unknown address. The page of a snapshot that a person is not allowed to see
// is the same as that of a snapshot that does not exist.
//
// Every page works without JavaScript. A form posts to the address of its page. After
// [auth.Forms.Check], the handler redirects (303) to that page, and the parameter "done" says which
// success message to show. With JavaScript, the page of a snapshot copies its link, and the forms
// of its share box work without reloading the page: the request has the header Fragment, and the
// response is only the section about shares.
package console
