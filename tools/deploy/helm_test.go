package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// values enable every optional object of the chart and set most of its options.
const values = `
image:
  repository: registry.example/snapcloud
  digest: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
caBundle: {configMap: authorities}
extraVolumes: [{name: extra, emptyDir: {}}]
extraVolumeMounts: [{name: extra, mountPath: /extra}]
openshift: true
service: {annotations: {balancer: internal}}
migration: {enabled: true, secretEnv: {DATABASE_URL: {secret: migration, key: url}}}
resources: {limits: {memory: 1.5Gi}}
config:
  trust_proxies: [10.1.2.0/24]
  public_url: https://snap.example
  blob: {url: "s3://snapshots?endpoint=https://s3.example"}
  limits: {max_snapshot_size: 5497558138880}
  log: {level: debug}
  organizations:
    - slug: acme
      name: Acme Inc
      sign_in: {type: oidc, issuer: "https://idp.example", client_id: snapcloud, client_secret: "${ACME_SECRET}"}
secretEnv:
  ACME_SECRET: {secret: snapcloud, key: acme}
env: {OTEL_EXPORTER_OTLP_HEADERS: x=y}
ingress: {enabled: true, className: nginx, host: snap.example, tls: {secretName: snap-tls}}
autoscaling: {enabled: true}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true}
networkPolicy:
  from: [{namespaceSelector: {matchLabels: {name: ingress}}}]
  egress: {enabled: true, rules: [{to: [{ipBlock: {cidr: 10.2.0.0/16}}], ports: [{port: 5432}]}]}
nodeSelector: {disk: ssd}
tolerations: [{key: only, operator: Exists}]
imagePullSecrets: [{name: pull}]
serviceAccount: {annotations: {role: snapcloud}}
`

// minimal are the required values. If one is missing, the chart reports it.
const minimal = `
image: {repository: registry.example/snapcloud}
config: {public_url: "https://snap.example", blob: {url: "s3://snapshots"}}
`

const chart = "deploy/helm/snapcloud"

// TestChartLint runs helm lint, with warnings as errors.
func TestChartLint(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"minimal": minimal, "everything": values} {
		result := lint.All(filepath.Join(root, chart), parse(t, text), "default", true)
		for _, m := range result.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// render runs helm template and returns the objects. It reads each object strictly into Kubernetes'
// own types, so that an unknown field is an error.
func render(t *testing.T, text string) []runtime.Object {
	t.Helper()
	rendered, err := template(t, text)
	if err != nil {
		t.Fatal(err)
	}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(all, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for file, text := range rendered {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, _, err := decoder.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", file, err, document)
				continue
			}
			objects = append(objects, object)
		}
	}
	return objects
}

func template(t *testing.T, text string) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, chart))
	if err != nil {
		t.Fatal(err)
	}
	v, err := chartutil.ToRenderValues(c, parse(t, text),
		chartutil.ReleaseOptions{Name: "snap", Namespace: "snap", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, v)
}

func pick[T runtime.Object](t *testing.T, all []runtime.Object) (found []T) {
	t.Helper()
	for _, object := range all {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %T", *new(T))
	}
	return found
}

// TestChart checks that Kubernetes accepts the chart's objects, that the program accepts their
// configuration, and that the pods have no rights beyond their needs.
func TestChart(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"minimal": minimal, "everything": values} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, text)
			if want := map[string]int{"minimal": 7, "everything": 13}[name]; len(objects) != want {
				t.Errorf("%d objects, want %d", len(objects), want)
			}
			pod := pick[*appsv1.Deployment](t, objects)[0].Spec.Template.Spec
			environment := []string{}
			for _, e := range pod.Containers[0].Env {
				value := e.Value
				if e.ValueFrom != nil {
					value = trial(e.Name)
				}
				environment = append(environment, e.Name+"="+value)
			}
			checkConfig(t, pick[*corev1.ConfigMap](t, objects)[0].Data["snapcloud.yaml"], environment)
			restricted(t, pod)
			data := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "data" })]
			if data.EmptyDir.SizeLimit != nil {
				t.Errorf("Kubernetes would end a pod whose deltas take more than %s", data.EmptyDir.SizeLimit)
			}
		})
	}
}

func trial(name string) string {
	switch name {
	case "DATABASE_URL":
		return "postgres://snapcloud@db.example/snapcloud"
	case "KEY_ENCRYPTION_KEY":
		return "dHJ5aW5nLW91dC1vbmx5LTMyLWJ5dGVzLWxvbmctISE="
	}
	return "x"
}

// restricted checks a pod against the rules of the Restricted profile of the Pod Security Standards
// for users, seccomp, privilege escalation and capabilities. It also checks that the container's
// root file system is read-only, that the pod has no token of the cluster, and that it has all
// probes.
func restricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	s := c.SecurityContext
	if pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot ||
		pod.SecurityContext.RunAsUser != nil && *pod.SecurityContext.RunAsUser == 0 {
		t.Error("the pod may run as root")
	}
	if pod.SecurityContext.SeccompProfile == nil ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("the pod has no seccomp profile")
	}
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Error("the container has more rights than it needs")
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod has a token of the cluster")
	}
	if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil ||
		c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("a probe is missing")
	}
}

// TestChartOptions checks that the chart keeps the promises of its values.
func TestChartOptions(t *testing.T) {
	t.Parallel()
	objects := render(t, values)
	pod := pick[*appsv1.Deployment](t, objects)[0].Spec.Template.Spec
	job := pick[*batchv1.Job](t, objects)[0].Spec.Template.Spec
	restricted := pod.SecurityContext
	if restricted.RunAsUser != nil || restricted.RunAsGroup != nil || restricted.FSGroup != nil {
		t.Errorf("OpenShift would refuse %+v", restricted)
	}
	for name, spec := range map[string]corev1.PodSpec{"pod": pod, "job": job} {
		c := spec.Containers[0]
		if !strings.Contains(c.Image, "@sha256:") {
			t.Errorf("the %s runs %s", name, c.Image)
		}
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
			if e.ValueFrom != nil {
				env[e.Name] = e.ValueFrom.SecretKeyRef.Name
			}
		}
		want := map[string]string{"pod": "snapcloud", "job": "migration"}[name]
		if env["DATABASE_URL"] != want || env["GOMEMLIMIT"] != "1382MiB" ||
			env["SSL_CERT_DIR"] != "/etc/ssl/certs:/etc/snapcloud-ca" {
			t.Errorf("the %s has the environment %v", name, env)
		}
		mounts := ""
		for _, m := range c.VolumeMounts {
			mounts += m.MountPath + " "
		}
		if !strings.Contains(mounts, "/etc/snapcloud-ca /extra ") || *c.SecurityContext.AllowPrivilegeEscalation {
			t.Errorf("the %s mounts %s; may escalate privileges: %t", name, mounts,
				*c.SecurityContext.AllowPrivilegeEscalation)
		}
	}
	policy := pick[*networkingv1.NetworkPolicy](t, objects)[0].Spec
	if len(policy.PolicyTypes) != 2 || len(policy.Egress) != 2 || len(policy.Ingress[0].From) != 1 {
		t.Errorf("the network policy is %+v", policy)
	}
	if pick[*corev1.Service](t, objects)[0].Annotations["balancer"] == "" &&
		pick[*corev1.Service](t, objects)[1].Annotations["balancer"] == "" {
		t.Error("the service has no annotations")
	}
}

// TestChartSaysWhatIsMissing checks that the chart reports missing values instead of starting
// something that cannot work.
func TestChartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"config: {public_url: https://x, blob: {url: s3://x}}":    "image.repository is required",
		"image: {repository: x}\nconfig: {blob: {url: s3://x}}":   "config.public_url is required",
		"image: {repository: x}\nconfig: {public_url: https://x}": "config.blob.url is required",
		minimal + "ingress: {enabled: true}":                      "ingress.host is required",
		"image: {repository: x}\nconfig: {public_url: https://x, blob: {url: s3://x}, " +
			"trust_proxies: [10.0.0.0/8]}": "networkPolicy.from is required",
		minimal + "image: {digest: x}": "digest",
		minimal + "replicas: 2":        "replicas",
		minimal + "replicaCount: many": "replicaCount",
		"image: {repository: x}\nconfig: {public_url: https://x, blob: {url: y}, " +
			"database: {url: \"\"}}": "config.database.url is required",
	} {
		if _, err := template(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestYAMLDocuments checks that every YAML file of deploy outside the chart is valid YAML.
func TestYAMLDocuments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/*/*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		relative, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		reader := bytes.NewReader([]byte(read(t, relative)))
		text, err := io.ReadAll(reader)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		var anything map[string]any
		if err := yaml.UnmarshalStrict(text, &anything); err != nil {
			t.Errorf("%s: %v", relative, err)
		}
	}
}
