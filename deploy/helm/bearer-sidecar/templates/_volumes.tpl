{{/*
The volumes of the sidecar, each with where the container has it. One is there only if a setting names a file of it, or if it was asked for by name:
a Secret that is missing would keep the pod from starting.
*/}}
{{- define "bearer-sidecar.sources" -}}
{{- $paths := printf "%s\n%s\n%s" (include "bearer-sidecar.config" .) (include "bearer-sidecar.fileContent" .) (toYaml .Values.extraEnv) -}}
{{- if .Values.client.assertion.audience }}
# Works with automountServiceAccountToken: false. The kubelet renews it after 80 % of its time.
- name: bearer-sidecar-assertion
  mountPath: /var/run/secrets/bearer-sidecar
  readOnly: true
  source:
    projected:
      defaultMode: 0444
      sources:
        - serviceAccountToken:
            path: token
            audience: {{ .Values.client.assertion.audience | quote }}
            expirationSeconds: {{ .Values.client.assertion.expirationSeconds }}
{{- end }}
{{- if or .Values.client.volume .Values.client.secretName (contains "/etc/bearer-sidecar/client/" $paths) }}
- name: bearer-sidecar-client
  mountPath: /etc/bearer-sidecar/client
  readOnly: true
  source:
    {{- if .Values.client.volume }}
    {{- toYaml .Values.client.volume | nindent 4 }}
    {{- else }}
    secret: { secretName: {{ .Values.client.secretName | default "bearer-sidecar-client" | quote }}, defaultMode: 0444 }
    {{- end }}
{{- end }}
{{- if or .Values.configFile.content .Values.configFile.volume }}
- name: bearer-sidecar-config
  mountPath: /etc/bearer-sidecar/config
  readOnly: true
  source:
    {{- if .Values.configFile.volume }}
    {{- toYaml .Values.configFile.volume | nindent 4 }}
    {{- else }}
    configMap: { name: {{ include "bearer-sidecar.name" . }}-file }
    {{- end }}
{{- end }}
- name: bearer-sidecar-state
  mountPath: /var/lib/bearer-sidecar
  source:
    emptyDir: { sizeLimit: 1Mi }
{{- if and .Values.fleet.secretName (contains "/etc/bearer-sidecar/redis/" $paths) }}
- name: bearer-sidecar-redis
  mountPath: /etc/bearer-sidecar/redis
  readOnly: true
  source:
    secret: { secretName: {{ .Values.fleet.secretName | quote }}, defaultMode: 0444 }
{{- end }}
{{- if and (eq .Values.mode "standalone") (contains "/etc/bearer-sidecar/callers/" $paths) }}
- name: bearer-sidecar-callers
  mountPath: /etc/bearer-sidecar/callers
  readOnly: true
  source:
    secret: { secretName: {{ .Values.standalone.requiredHeader.secretName | quote }}, defaultMode: 0444 }
{{- end }}
{{- end -}}

{{/* The files belong to root and only the sidecar mounts them; a narrower mode needs an fsGroup for the whole pod. */}}
{{- define "bearer-sidecar.volumes" -}}
{{- $volumes := list -}}
{{- range include "bearer-sidecar.sources" . | fromYamlArray -}}
{{- $volumes = append $volumes (merge (dict "name" .name) .source) -}}
{{- end -}}
{{- concat $volumes (.Values.extraVolumes | default list) | toYaml -}}
{{- end -}}

{{- define "bearer-sidecar.volumeMounts" -}}
{{- $mounts := list -}}
{{- range include "bearer-sidecar.sources" . | fromYamlArray -}}
{{- $mounts = append $mounts (omit . "source") -}}
{{- end -}}
{{- concat $mounts (.Values.extraVolumeMounts | default list) | toYaml -}}
{{- end -}}
