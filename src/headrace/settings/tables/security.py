"""Who may connect and what they may do: TLS, SASL, authorizer, delegation tokens."""

ROWS = """
authorizer.class.name  string  ""  low
    The class that decides who may do what; empty means everybody may do everything.
principal.builder.class  class  org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder \
    medium  per-broker
    The class that turns a connection's credentials into a user.
connections.max.reauth.ms  long  0  medium
    How long a SASL session lasts before the client must authenticate again; 0 is forever.
security.providers  string  unset  low
    Java security providers to install.
sasl.enabled.mechanisms  list  GSSAPI  medium  per-broker
    The SASL mechanisms clients may use.
sasl.mechanism.inter.broker.protocol  string  GSSAPI  medium  per-broker
    The SASL mechanism brokers use among themselves.
sasl.mechanism.controller.protocol  string  GSSAPI  high
    The SASL mechanism used towards controllers.
sasl.jaas.config  password  unset  medium  per-broker
    Login settings of SASL in Java's JAAS form.
sasl.server.callback.handler.class  class  unset  medium
    The class that checks SASL credentials on the server.
sasl.client.callback.handler.class  class  unset  medium
    The class that provides SASL credentials to outgoing connections.
sasl.login.callback.handler.class  class  unset  medium
    The class that provides credentials to the SASL login.
sasl.login.class  class  unset  medium
    The class that performs the SASL login.
sasl.server.max.receive.size  int  524288  medium
    The largest frame read from a connection that has not authenticated yet.
sasl.login.connect.timeout.ms  int  unset  low
    How long connecting to a login service may take.
sasl.login.read.timeout.ms  int  unset  low
    How long reading from a login service may take.
sasl.login.retry.backoff.ms  long  100  low
    The first wait before a failed login is tried again.
sasl.login.retry.backoff.max.ms  long  10000  low
    The longest wait before a failed login is tried again.
sasl.login.refresh.window.factor  double  0.8  medium  per-broker
    The share of a credential's life after which it is renewed.
sasl.login.refresh.window.jitter  double  0.05  medium  per-broker
    The share of a credential's life that is added at random to its renewal time.
sasl.login.refresh.min.period.seconds  short  60  medium  per-broker
    The least time between two renewals of a credential.
sasl.login.refresh.buffer.seconds  short  300  medium  per-broker
    How long before its end a credential is renewed at the latest.
sasl.kerberos.service.name  string  unset  medium  per-broker
    The Kerberos service name brokers run under.
sasl.kerberos.kinit.cmd  string  /usr/bin/kinit  medium  per-broker
    The path of Kerberos' kinit.
sasl.kerberos.ticket.renew.window.factor  double  0.8  medium  per-broker
    The share of a Kerberos ticket's life after which it is renewed.
sasl.kerberos.ticket.renew.jitter  double  0.05  medium  per-broker
    The random share that is added to a Kerberos ticket's renewal time.
sasl.kerberos.min.time.before.relogin  long  60000  medium  per-broker
    The least time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules  list  DEFAULT  medium  per-broker
    Rules that shorten Kerberos principals to user names.
sasl.oauthbearer.token.endpoint.url  string  unset  medium
    Where OAuth tokens are fetched.
sasl.oauthbearer.jwks.endpoint.url  string  unset  medium
    Where the keys that sign OAuth tokens are fetched.
sasl.oauthbearer.jwks.endpoint.refresh.ms  long  3600000  low
    How often the signing keys are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  long  100  low
    The first wait before a failed fetch of signing keys is tried again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long  10000  low
    The longest wait before a failed fetch of signing keys is tried again.
sasl.oauthbearer.scope.claim.name  string  scope  low
    The token claim that names its scope.
sasl.oauthbearer.sub.claim.name  string  sub  low
    The token claim that names its user.
sasl.oauthbearer.scope  string  unset  medium
    The scope asked for when a token is fetched.
sasl.oauthbearer.clock.skew.seconds  int  30  low
    How far the clocks of broker and token service may differ.
sasl.oauthbearer.expected.audience  list  ""  high
    The audiences of which a token must name one.
sasl.oauthbearer.expected.issuer  string  unset  high
    The issuer a token must name.
sasl.oauthbearer.client.credentials.client.id  string  unset  medium
    The client id used to fetch a token.
sasl.oauthbearer.client.credentials.client.secret  password  unset  medium
    The client secret used to fetch a token.
sasl.oauthbearer.jwt.retriever.class  class  org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  medium
    The class that fetches tokens.
sasl.oauthbearer.jwt.validator.class  class  org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  medium
    The class that checks tokens.
sasl.oauthbearer.assertion.algorithm  string  RS256  {ES256,RS256}i  medium
    The algorithm that signs an assertion for the token service.
sasl.oauthbearer.assertion.claim.aud  string  unset  medium
    The audience written into an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds  int  300  0..86400  low
    How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss  string  unset  medium
    The issuer written into an assertion.
sasl.oauthbearer.assertion.claim.jti.include  boolean  false  medium
    Whether an assertion gets an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds  int  60  0..3600  low
    How far before its making an assertion is already valid.
sasl.oauthbearer.assertion.claim.sub  string  unset  medium
    The subject written into an assertion.
sasl.oauthbearer.assertion.file  string  unset  medium
    A file that holds a ready-made assertion.
sasl.oauthbearer.assertion.private.key.file  string  unset  medium
    The file of the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase  password  unset  medium
    The passphrase of the key that signs assertions.
sasl.oauthbearer.assertion.template.file  string  unset  medium
    A file with further claims for assertions.
ssl.protocol  string  TLSv1.3  medium  per-broker
    The TLS version a context is made for.
ssl.provider  string  unset  medium  per-broker
    The Java provider of TLS.
ssl.cipher.suites  list  ""  medium  per-broker
    The TLS cipher suites allowed; empty allows the library's own.
ssl.enabled.protocols  list  TLSv1.2,TLSv1.3  medium  per-broker
    The TLS versions allowed.
ssl.client.auth  string  none  {required,requested,none}  medium  per-broker
    Whether clients must, may or need not show a certificate.
ssl.keystore.type  string  JKS  medium  per-broker
    The file format of the key store.
ssl.keystore.location  string  unset  medium  per-broker
    The path of the key store.
ssl.keystore.password  password  unset  medium  per-broker
    The password of the key store.
ssl.key.password  password  unset  medium  per-broker
    The password of the private key.
ssl.keystore.key  password  unset  medium  per-broker
    The private key itself, as PEM text.
ssl.keystore.certificate.chain  password  unset  medium  per-broker
    The certificate chain itself, as PEM text.
ssl.truststore.type  string  JKS  medium  per-broker
    The file format of the trust store.
ssl.truststore.location  string  unset  medium  per-broker
    The path of the trust store.
ssl.truststore.password  password  unset  medium  per-broker
    The password of the trust store.
ssl.truststore.certificates  password  unset  medium  per-broker
    The trusted certificates themselves, as PEM text.
ssl.keymanager.algorithm  string  SunX509  medium  per-broker
    The Java algorithm that chooses keys.
ssl.trustmanager.algorithm  string  PKIX  medium  per-broker
    The Java algorithm that checks certificates.
ssl.endpoint.identification.algorithm  string  https  low  per-broker
    How a server's certificate is matched with its host name; empty does not match it.
ssl.secure.random.implementation  string  unset  low  per-broker
    The Java random generator used for TLS.
ssl.engine.factory.class  class  unset  low  per-broker
    The class that makes TLS engines.
ssl.principal.mapping.rules  string  DEFAULT  low
    Rules that turn a certificate's name into a user name.
ssl.allow.dn.changes  boolean  false  low
    Whether a renewed key store may carry another distinguished name.
ssl.allow.san.changes  boolean  false  low
    Whether a renewed key store may carry other alternative names.
super.users  string  ""  low  hidden
    Users that may do everything, separated by semicolons.
allow.everyone.if.no.acl.found  boolean  false  low  hidden
    Whether a resource that no rule mentions is open to everybody.
delegation.token.secret.key  password  unset  medium
    The secret that signs delegation tokens; the same on every node.
delegation.token.max.lifetime.ms  long  604800000  1..  medium
    How long a delegation token can be renewed at most.
delegation.token.expiry.time.ms  long  86400000  1..  medium
    How long a delegation token lasts without a renewal.
delegation.token.expiry.check.interval.ms  long  3600000  1..  low
    How often expired delegation tokens are removed.
config.providers  list  ""  low  cluster-wide
    Names of providers that resolve references in setting values.
"""
