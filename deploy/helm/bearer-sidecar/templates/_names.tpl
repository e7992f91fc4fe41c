{{/* What everything of this release is called. */}}
{{- define "bearer-sidecar.name" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bearer-sidecar.labels" -}}
{{- $labels := dict "app.kubernetes.io/name" (.Values.nameOverride | default "bearer-sidecar" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $labels .Values.commonLabels) -}}
{{- end -}}

{{/* Of an object of the release `root`, with the `suffix` of its name, and the `labels` and `annotations` of its own, which win. */}}
{{- define "bearer-sidecar.metadata" -}}
metadata:
  name: {{ include "bearer-sidecar.name" .root }}{{ .suffix }}
  labels: {{- merge dict (.labels | default dict) (include "bearer-sidecar.labels" .root | fromYaml) | toYaml | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* What a pod with the sidecar is labelled with, and the monitor and the policies select by. */}}
{{- define "bearer-sidecar.podLabels" -}}
bearer-sidecar: {{ .Release.Name | quote }}
{{- end -}}

{{/* Rolls the pods when a setting has changed. */}}
{{- define "bearer-sidecar.podAnnotations" -}}
checksum/bearer-sidecar: {{ printf "%s%s" (include "bearer-sidecar.config" .) (include "bearer-sidecar.fileContent" .) | sha256sum }}
{{- end -}}

{{- define "bearer-sidecar.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The older place of the name is below standalone. */}}
{{- define "bearer-sidecar.serviceAccountName" -}}
{{- $name := .Values.serviceAccountName | default .Values.standalone.serviceAccountName | default "" -}}
{{- if and .Values.serviceAccount.create (not $name) -}}
{{- $name = include "bearer-sidecar.name" . -}}
{{- end -}}
{{- $name -}}
{{- end -}}
