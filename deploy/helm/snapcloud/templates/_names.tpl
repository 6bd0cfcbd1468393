{{- define "snapcloud.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "snapcloud.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "snapcloud.labels" -}}
{{ include "snapcloud.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The configuration. The chart's own settings take precedence. */}}
{{- define "snapcloud.config" -}}
{{- $_ := required "config.public_url is required, such as https://snap.example" .Values.config.public_url }}
{{- $_ := required "config.blob.url is required, such as s3://bucket?endpoint=https://s3.example: replicas share a bucket" .Values.config.blob.url }}
{{- $_ := required "config.database.url is required: replicas share a PostgreSQL database" .Values.config.database.url }}
{{- if and .Values.config.trust_proxies .Values.networkPolicy.enabled (not .Values.networkPolicy.from) }}
{{- fail "networkPolicy.from is required with config.trust_proxies: without it every pod in those networks can forge addresses" }}
{{- end }}
{{- $config := deepCopy .Values.config }}
{{- $_ := set $config "listen" "0.0.0.0:8080" }}
{{- $_ := set $config "private" (dict "listen" "0.0.0.0:9090") }}
{{- $_ := set $config "data_dir" "/data" }}
{{- $_ := set $config "log" (mergeOverwrite (dict "level" "info") ($config.log | default dict) (dict "format" "json")) }}
{{- toYaml $config }}
{{- end }}

{{- /* The image, by its digest if that is known. */}}
{{- define "snapcloud.image" -}}
{{- $repository := required "image.repository is required: where you pushed the image" .Values.image.repository }}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "snapcloud.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "snapcloud.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Environment variables from Secrets, and the certificates. */}}
{{- define "snapcloud.env" -}}
{{- range $name, $from := .secretEnv }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $from.secret }}, key: {{ $from.key }}}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- if .Values.caBundle.configMap }}
- {name: SSL_CERT_DIR, value: "/etc/ssl/certs:/etc/snapcloud-ca"}
{{- end }}
{{- with include "snapcloud.memory" . }}
- {name: GOMEMLIMIT, value: {{ . }}}
{{- end }}
{{- end }}

{{- /* Nine tenths of limits.memory. */}}
{{- define "snapcloud.memory" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString }}
{{- if hasSuffix "Mi" $limit }}{{ mulf (trimSuffix "Mi" $limit) 0.9 | int }}MiB
{{- else if hasSuffix "Gi" $limit }}{{ mulf (trimSuffix "Gi" $limit) 921.6 | int }}MiB
{{- end }}
{{- end }}
