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

{{- /* The configuration: what the chart sets wins. */}}
{{- define "snapcloud.config" -}}
{{- $_ := required "config.public_url is required, such as https://snap.example" .Values.config.public_url }}
{{- $_ := required "config.blob.url is required, such as s3://bucket?endpoint=https://s3.example: replicas share a bucket" .Values.config.blob.url }}
{{- $_ := required "config.database.url is required: replicas share a PostgreSQL" .Values.config.database.url }}
{{- $config := deepCopy .Values.config }}
{{- $_ := set $config "listen" "0.0.0.0:8080" }}
{{- $_ := set $config "private" (dict "listen" "0.0.0.0:9090") }}
{{- $_ := set $config "data_dir" "/data" }}
{{- $_ := set $config "log" (mergeOverwrite (dict "level" "info") ($config.log | default dict) (dict "format" "json")) }}
{{- toYaml $config }}
{{- end }}
