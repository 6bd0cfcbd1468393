package local

// Config is the effective configuration: config.yaml, overridden by the environment (SNAPCLI_ with
// __ for a dot, such as SNAPCLI_CLOUD__API_KEY). A URL keeps its ${NAME} references. They are
// expanded only to use the URL, and their values are never printed.
type Config struct {
	Cloud           Cloud                     `yaml:"cloud"`
	Targets         map[string]Target         `yaml:"targets"`
	StorageProfiles map[string]StorageProfile `yaml:"storage_profiles"`
	Identities      []string                  `yaml:"identities"`     // key files, or ${NAME}
	PostgresTools   []string                  `yaml:"postgres_tools"` // folders; if empty, PATH
	Trust           TrustSpec                 `yaml:"trust,omitempty"`
}

// TrustSpec sets whose programs, such as functions and triggers, are loaded with a snapshot.
type TrustSpec struct {
	// OwnOrganization loads the programs of snapshots pulled from the user's own organization or
	// from a storage profile. Nil means true.
	OwnOrganization *bool `yaml:"own_organization,omitempty"`
}

func (t TrustSpec) ownOrganization() bool { return t.OwnOrganization == nil || *t.OwnOrganization }

// Cloud configures the connection to the cloud service (SPEC 2.6).
type Cloud struct {
	URL    string `yaml:"url"`
	APIKey string `yaml:"api_key"`
	// CAFile is a file of PEM certificates of authorities to trust in addition to the system's. A
	// relative path is relative to the configuration file.
	CAFile string `yaml:"ca_file,omitempty"`
	// PlainStorage allows unencrypted http between this machine and the object store of a service
	// that is itself reached over https.
	PlainStorage bool `yaml:"plain_storage,omitempty"`
}

// StorageProfile is a location to push snapshots to and pull them from without the cloud service.
type StorageProfile struct {
	URL string `yaml:"url"`
}

// Target is a database to take snapshots of, and the database to load them into. Scratch names any
// database on the server that holds scratch copies; if Scratch is empty, the destination's server
// holds them.
type Target struct {
	Name        string       `yaml:"-"`
	Source      string       `yaml:"source,omitempty"`      // URL of the database to build from
	Destination string       `yaml:"destination,omitempty"` // URL of the database to replace
	Scratch     string       `yaml:"scratch,omitempty"`     // URL on the server for scratch copies
	Jobs        int          `yaml:"jobs,omitempty"`        // 0 is the number of cores
	Production  bool         `yaml:"production,omitempty"`  // load needs --force-production
	EncryptTo   []string     `yaml:"encrypt_to,omitempty"`  // public keys, or files of them
	Sanitize    SanitizeSpec `yaml:"sanitize,omitempty"`
	Subset      SubsetSpec   `yaml:"subset,omitempty"`
	// Via is the URL of an SSH server through which the source is reached. PasswordCommand is a
	// program with its arguments; it runs before each connection and prints the source's password.
	Via                        string   `yaml:"via,omitempty"`
	PasswordCommand            []string `yaml:"password_command,omitempty"`
	DestinationVia             string   `yaml:"destination_via,omitempty"`
	DestinationPasswordCommand []string `yaml:"destination_password_command,omitempty"`
	ScratchVia                 string   `yaml:"scratch_via,omitempty"`
	ScratchPasswordCommand     []string `yaml:"scratch_password_command,omitempty"`

	// The following fields are lists of patterns. Include selects tables and Schemas selects
	// PostgreSQL schemas; an empty list selects all. Exclude leaves out tables and views,
	// ExcludeExtensions leaves out extensions, and ExcludeData leaves out the rows of tables. Omit
	// lists kinds of objects to leave out; see [OmitKinds].
	Include           []string `yaml:"include,omitempty"`
	Schemas           []string `yaml:"schemas,omitempty"`
	Exclude           []string `yaml:"exclude,omitempty"`
	ExcludeData       []string `yaml:"exclude_data,omitempty"`
	ExcludeExtensions []string `yaml:"exclude_extensions,omitempty"`
	Omit              []string `yaml:"omit,omitempty"`

	// AfterLoad is a file of SQL that a load runs before it replaces the destination. `load --only`
	// and clones run neither AfterLoad nor Grants.
	AfterLoad string `yaml:"after_load,omitempty"`

	// Grants are the GRANT statements that a load ends with.
	Grants []string `yaml:"grants,omitempty"`

	Clones   ClonesSpec `yaml:"clones,omitempty"`
	Schedule string     `yaml:"schedule,omitempty"`  // of `snapcli agent`, in the syntax of cron
	TimeZone string     `yaml:"time_zone,omitempty"` // of the schedule; "" is UTC
	Checks   []Check    `yaml:"checks,omitempty"`    // must hold before the agent pushes
}

// Check is a query on a masked copy and the value that it must return.
type Check struct {
	SQL    string `yaml:"sql"`
	Expect string `yaml:"expect"`
}

// ClonesSpec limits the clones of a target. The zero value means the defaults.
type ClonesSpec struct {
	Max  int    `yaml:"max,omitempty"`  // how many may exist at once; 0 means 20
	TTL  string `yaml:"ttl,omitempty"`  // default lifetime of a clone, such as 2h or 7d; "" means 24h
	Warm int    `yaml:"warm,omitempty"` // copies that are kept ready for `snapcli run`
}

// SubsetSpec limits the snapshots of a target to some rows and the rows related to them. The zero
// value includes every row. Rows and MaxSize cannot be combined with each other, nor with
// Where or Percent.
type SubsetSpec struct {
	Where   map[string]string `yaml:"where,omitempty"`    // conditions of the starting rows, by table
	Percent float64           `yaml:"percent,omitempty"`  // percentage of rows; see docs/configuration.md
	Rows    int64             `yaml:"rows,omitempty"`     // maximum number of rows
	MaxSize string            `yaml:"max_size,omitempty"` // maximum size, such as 200MB
}

// SanitizeSpec names the files that define how a target is masked. Relative paths are relative to
// the configuration file.
type SanitizeSpec struct {
	Rules string `yaml:"rules,omitempty"`
	SQL   string `yaml:"sql,omitempty"`

	// Prove says whether masked copies are loaded into a scratch database as a test. Nil means yes
	// if a server for that database can be reached.
	Prove *bool `yaml:"prove,omitempty"`
}
