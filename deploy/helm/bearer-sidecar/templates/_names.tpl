{{/* What everything of this release is called. */}}
{{- define "bearer-sidecar.name" -}}
{{- if contains "bearer-sidecar" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-bearer-sidecar" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bearer-sidecar.labels" -}}
app.kubernetes.io/name: bearer-sidecar
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What a pod with the sidecar is labelled with, and the monitor and the policies select by. */}}
{{- define "bearer-sidecar.podLabels" -}}
bearer-sidecar: {{ .Release.Name | quote }}
{{- end -}}

{{/* Rolls the pods when a setting has changed. */}}
{{- define "bearer-sidecar.podAnnotations" -}}
checksum/bearer-sidecar: {{ include "bearer-sidecar.config" . | sha256sum }}
{{- end -}}

{{/* What would fail only when a pod starts, or not at all: without restartPolicy an init container that never ends keeps the app away. */}}
{{- define "bearer-sidecar.checkCluster" -}}
{{- if and (eq .Values.mode "native") (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "mode: native needs Kubernetes 1.29 or later, and this is %s: set mode: classic, or tell helm template the version of your cluster by --kube-version" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* What suits the mode, under what the user says. Whole numbers stay whole: a large one would be written as 1e+06. */}}
{{- define "bearer-sidecar.config" -}}
{{- $config := dict "SIDECAR_ADMIN_LISTEN" "0.0.0.0:19464" "SIDECAR_DRAIN_MS" "25000" -}}
{{- /* Files, not variables: they can be rotated without a restart, and they are in no environment dump. */ -}}
{{- /* What was learned of the partner's limit, and the token (encrypted), outlast a restart of the container. */ -}}
{{- $_ := set $config "SIDECAR_THROTTLE_STATE_FILE" "/var/lib/bearer-sidecar/limit.json" -}}
{{- if .Values.client.assertion.audience -}}
{{- $_ := set $config "SIDECAR_AUTH_METHOD" "client_assertion" -}}
{{- $_ := set $config "SIDECAR_AUTH_ASSERTION_FILE" "/var/run/secrets/bearer-sidecar/token" -}}
{{- $_ := set $config "SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE" .Values.client.assertion.audience -}}
{{- $_ := set $config "SIDECAR_CLIENT_ID" .Values.client.assertion.clientId -}}
{{- else -}}
{{- $_ := set $config "SIDECAR_CLIENT_ID_FILE" (printf "/etc/bearer-sidecar/client/%s" .Values.client.clientIdKey) -}}
{{- with .Values.client.clientSecretKey -}}
{{- $_ := set $config "SIDECAR_CLIENT_SECRET_FILE" (printf "/etc/bearer-sidecar/client/%s" .) -}}
{{- end -}}
{{- $_ := set $config "SIDECAR_AUTH_CACHE_FILE" "/var/lib/bearer-sidecar/token" -}}
{{- end -}}
{{- if .Values.fleet.secretName -}}
{{- $_ := set $config "SIDECAR_REDIS_URL_FILE" (printf "/etc/bearer-sidecar/redis/%s" .Values.fleet.urlKey) -}}
{{- end -}}
{{- if ne .Values.mode "native" -}}
{{- $_ := set $config "SIDECAR_DRAIN_DELAY_MS" "15000" -}}
{{- $_ := set $config "SIDECAR_DRAIN_MS" "40000" -}}
{{- end -}}
{{- if eq .Values.mode "standalone" -}}
{{- $name := include "bearer-sidecar.name" . -}}
{{- $service := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) $service (printf "%s.%s" $service .Values.standalone.clusterDomain) -}}
{{- $_ := set $config "SIDECAR_LISTEN" "0.0.0.0:18080" -}}
{{- $_ := set $config "SIDECAR_ALLOWED_HOSTS" (concat $hosts .Values.standalone.allowedHosts | join ",") -}}
{{- with .Values.standalone.requiredHeader -}}
{{- $_ := set $config "SIDECAR_LISTEN_REQUIRED_HEADER_NAME" .name -}}
{{- $_ := set $config "SIDECAR_LISTEN_REQUIRED_HEADER_VALUE_FILE" (printf "/etc/bearer-sidecar/callers/%s" .key) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.config -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) -}}
{{- $_ := set $config $name (printf "%.0f" $value) -}}
{{- else -}}
{{- $_ := set $config $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $config }}
{{ $name }}: {{ $value | quote }}
{{- end -}}
{{- end -}}
