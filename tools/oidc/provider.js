// An OpenID Connect provider for the tests: oidc-provider with its development forms, which accept
// any password. The user name is the account's ID. The environment variable CLAIMS has the claims
// of each account. The program prints the provider's address.
import http from 'node:http'
import Provider from 'oidc-provider'

const claims = JSON.parse(process.env.CLAIMS)
const server = http.createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const of = (id) => ({ sub: id, email: `${id}@acme.test`, email_verified: true, name: id, ...claims[id] })
  const provider = new Provider(issuer, {
    clients: [
      { client_id: 'snapcloud', client_secret: 'a-secret-that-is-only-for-tests', redirect_uris: [process.env.REDIRECT], response_types: ['code'], grant_types: ['authorization_code', 'refresh_token'] },
      { client_id: 'snapcli', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: [], response_types: [], grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'] },
    ],
    cookies: { keys: ['only-for-tests'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups', 'roles', 'https://acme.test/groups', 'realm', 'hasgroups'] },
    conformIdTokenClaims: process.env.IN_ID_TOKEN !== 'yes',
    findAccount: (ctx, id) => ({ accountId: id, claims: () => of(id) }),
    extraTokenClaims: (ctx, token) => (token.accountId ? of(token.accountId) : undefined),
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (ctx, client) => (client.clientId === 'snapcli' ? process.env.AUDIENCE : []),
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: 'openid offline_access', audience: process.env.AUDIENCE, accessTokenFormat: 'jwt', accessTokenTTL: 600 }),
      },
    },
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 3600, DeviceCode: 600, RefreshToken: 600 },
  })
  provider.on('server_error', (ctx, err) => console.error(err))
  server.on('request', provider.callback())
  console.log(issuer)
})
