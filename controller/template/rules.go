package template

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Ceiling is the most that a container or a volume of a template may ask for
// without the loosening Unlimited.
type Ceiling struct{ CPU, Memory, Storage resource.Quantity }

// DefaultCeiling is the ceiling unless the controller's settings name another.
func DefaultCeiling() Ceiling {
	return Ceiling{CPU: resource.MustParse("8"), Memory: resource.MustParse("16Gi"), Storage: resource.MustParse("16Gi")}
}

// maxGrace bounds what a sandbox may live on after its deletion, in seconds.
const maxGrace = 30

// rule decides about one field that a template sets. Without a loosening and a
// why, it allows the field.
type rule struct {
	// fields says that the field's own fields have rules as well.
	fields bool
	// except are the values that the rule does not apply to.
	except func(value any) bool
	// needs is the loosening that the value needs.
	needs v1alpha1.Loosening
	// why says why no loosening allows the value.
	why string
}

var (
	allow  = rule{}
	fields = rule{fields: true}
)

func need(l v1alpha1.Loosening) rule { return rule{needs: l} }

func refuse(why string) rule { return rule{why: why} }

func (r rule) unless(harmless func(any) bool) rule {
	r.except = harmless
	return r
}

// rules holds what a template may say: Go type and JSON name of a field, and
// what is decided about it. A field that is missing here is refused, so that one
// of a newer Kubernetes version is refused until somebody decides about it.
// Only fields that are set, and elements of lists and maps, are looked at.
func rules(ceiling Ceiling) map[string][]rule {
	const (
		endpoint = "the kubelet would send requests of the template's choice to other hosts"
		windows  = "sandboxes run on Linux"
		names    = "a sandbox has no name on the network"
		stuck    = "nobody would remove it or fulfil it"
		admitted = "set at admission"
	)
	var (
		secret    = []rule{keys, need(v1alpha1.LoosenSecrets)}
		elsewhere = []rule{keys, need(v1alpha1.LoosenVolumes)} // a driver may read Secrets itself
	)
	return map[string][]rule{
		"PodTemplate.metadata":    {fields},
		"PodTemplate.spec":        {fields},
		"PodMetadata.labels":      {refuse("the controller's own").unless(foreign), need(v1alpha1.LoosenMetadata).unless(plainLabel)},
		"PodMetadata.annotations": {refuse("the controller's own").unless(foreign), need(v1alpha1.LoosenMetadata).unless(plainAnnotation)},

		"PodSpec.containers":                    {fields, need(v1alpha1.LoosenSidecars).unless(single)},
		"PodSpec.initContainers":                {fields, need(v1alpha1.LoosenSidecars)},
		"PodSpec.ephemeralContainers":           {refuse("not possible in a template")},
		"PodSpec.volumes":                       {fields},
		"PodSpec.restartPolicy":                 {refuse("a sandbox is used once, only Never is possible").unless(only(corev1.RestartPolicyNever))},
		"PodSpec.terminationGracePeriodSeconds": {refuse("at most 30, for a sandbox ends with its claim").unless(atMost(maxGrace))},
		"PodSpec.activeDeadlineSeconds":         {refuse("set by the claim")},
		"PodSpec.os":                            {refuse(windows).unless(only(corev1.PodOS{Name: corev1.Linux}))},
		"PodSpec.runtimeClassName":              {allow},
		"PodSpec.overhead":                      {refuse(admitted)},
		"PodSpec.resources":                     {fields},
		"PodSpec.resourceClaims":                {need(v1alpha1.LoosenDevices)},
		"PodSpec.imagePullSecrets":              {allow}, // the kubelet's, not the sandbox's

		"PodSpec.serviceAccountName":           {need(v1alpha1.LoosenServiceAccount).unless(only("default"))},
		"PodSpec.serviceAccount":               {need(v1alpha1.LoosenServiceAccount).unless(only("default"))},
		"PodSpec.automountServiceAccountToken": {need(v1alpha1.LoosenServiceAccountToken).unless(only(false))},

		"PodSpec.hostNetwork":           {need(v1alpha1.LoosenHostNamespaces)},
		"PodSpec.hostPID":               {need(v1alpha1.LoosenHostNamespaces)},
		"PodSpec.hostIPC":               {need(v1alpha1.LoosenHostNamespaces)},
		"PodSpec.hostUsers":             {need(v1alpha1.LoosenHostUsers).unless(only(false))},
		"PodSpec.shareProcessNamespace": {refuse("the runner must be the first process of its own").unless(only(false))},
		"PodSpec.securityContext":       {fields},

		"PodSpec.dnsPolicy":          {need(v1alpha1.LoosenNetwork)},
		"PodSpec.dnsConfig":          {need(v1alpha1.LoosenNetwork)},
		"PodSpec.hostAliases":        {need(v1alpha1.LoosenNetwork)},
		"PodSpec.enableServiceLinks": {need(v1alpha1.LoosenNetwork).unless(only(false))},
		"PodSpec.hostname":           {allow},
		"PodSpec.subdomain":          {refuse(names)},
		"PodSpec.setHostnameAsFQDN":  {refuse(names).unless(only(false))},
		"PodSpec.hostnameOverride":   {refuse(names)},

		"PodSpec.nodeSelector":              {allow}, // restrict where the scheduler may go anyway
		"PodSpec.affinity":                  {allow},
		"PodSpec.topologySpreadConstraints": {allow},
		"PodSpec.nodeName":                  {need(v1alpha1.LoosenScheduling)},
		"PodSpec.schedulerName":             {need(v1alpha1.LoosenScheduling).unless(only(corev1.DefaultSchedulerName))},
		"PodSpec.tolerations":               {need(v1alpha1.LoosenScheduling)},
		"PodSpec.priorityClassName":         {need(v1alpha1.LoosenScheduling).unless(not(systemPriority))},
		"PodSpec.priority":                  {refuse(admitted)},
		"PodSpec.preemptionPolicy":          {allow}, // admission compares it with the class
		"PodSpec.readinessGates":            {refuse(stuck)},
		"PodSpec.schedulingGates":           {refuse(stuck)},
		"PodSpec.schedulingGroup":           {refuse("a sandbox is scheduled alone")},

		"PodSecurityContext.seLinuxOptions":           {need(v1alpha1.LoosenSELinux)},
		"PodSecurityContext.seLinuxChangePolicy":      {need(v1alpha1.LoosenSELinux)},
		"PodSecurityContext.windowsOptions":           {refuse(windows)},
		"PodSecurityContext.runAsUser":                {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"PodSecurityContext.runAsGroup":               {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"PodSecurityContext.runAsNonRoot":             {need(v1alpha1.LoosenRunAsRoot).unless(only(true))},
		"PodSecurityContext.supplementalGroups":       {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"PodSecurityContext.supplementalGroupsPolicy": {allow},
		"PodSecurityContext.fsGroup":                  {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"PodSecurityContext.fsGroupChangePolicy":      {allow},
		"PodSecurityContext.sysctls":                  {need(v1alpha1.LoosenHostNamespaces)},
		"PodSecurityContext.seccompProfile":           {need(v1alpha1.LoosenSeccomp).unless(only(corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}))},
		"PodSecurityContext.appArmorProfile":          {need(v1alpha1.LoosenAppArmor).unless(only(corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}))},

		"Container.name":                     {allow},
		"Container.image":                    {allow},
		"Container.imagePullPolicy":          {allow},
		"Container.command":                  {allow},
		"Container.args":                     {allow},
		"Container.workingDir":               {allow},
		"Container.ports":                    {fields},
		"Container.env":                      {fields},
		"Container.envFrom":                  {fields},
		"Container.resources":                {fields},
		"Container.resizePolicy":             {refuse("a sandbox keeps its size")},
		"Container.restartPolicy":            {refuse("a sandbox is used once, only Never is possible").unless(only(corev1.ContainerRestartPolicyNever))},
		"Container.restartPolicyRules":       {refuse("a sandbox is used once")},
		"Container.volumeMounts":             {fields},
		"Container.volumeDevices":            {need(v1alpha1.LoosenDevices)},
		"Container.livenessProbe":            {refuse("a failure would end a program that runs")},
		"Container.readinessProbe":           {fields},
		"Container.startupProbe":             {fields},
		"Container.lifecycle":                {refuse("hooks run beside the runner, and delay a sandbox's end")},
		"Container.terminationMessagePath":   {allow},
		"Container.terminationMessagePolicy": {allow},
		"Container.securityContext":          {fields},
		"Container.stdin":                    {refuse("nobody attaches to a sandbox")},
		"Container.stdinOnce":                {refuse("nobody attaches to a sandbox")},
		"Container.tty":                      {refuse("nobody attaches to a sandbox")},

		"SecurityContext.capabilities":             {fields},
		"SecurityContext.privileged":               {need(v1alpha1.LoosenPrivilegeEscalation).unless(only(false))},
		"SecurityContext.seLinuxOptions":           {need(v1alpha1.LoosenSELinux)},
		"SecurityContext.windowsOptions":           {refuse(windows)},
		"SecurityContext.runAsUser":                {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"SecurityContext.runAsGroup":               {need(v1alpha1.LoosenRunAsRoot).unless(not(root))},
		"SecurityContext.runAsNonRoot":             {need(v1alpha1.LoosenRunAsRoot).unless(only(true))},
		"SecurityContext.readOnlyRootFilesystem":   {need(v1alpha1.LoosenWritableRootFilesystem).unless(only(true))},
		"SecurityContext.allowPrivilegeEscalation": {need(v1alpha1.LoosenPrivilegeEscalation).unless(only(false))},
		"SecurityContext.procMount":                {need(v1alpha1.LoosenPrivilegeEscalation).unless(only(corev1.DefaultProcMount))},
		"SecurityContext.seccompProfile":           {need(v1alpha1.LoosenSeccomp).unless(only(corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}))},
		"SecurityContext.appArmorProfile":          {need(v1alpha1.LoosenAppArmor).unless(only(corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}))},
		"Capabilities.add":                         {need(v1alpha1.LoosenCapabilities)},
		"Capabilities.drop":                        {allow}, // ALL is dropped in any case

		"ContainerPort.name":          {allow},
		"ContainerPort.containerPort": {allow},
		"ContainerPort.protocol":      {allow},
		"ContainerPort.hostPort":      {need(v1alpha1.LoosenHostNamespaces)},
		"ContainerPort.hostIP":        {need(v1alpha1.LoosenHostNamespaces)},

		"EnvVar.name":                   {allow},
		"EnvVar.value":                  {allow},
		"EnvVar.valueFrom":              {fields},
		"EnvVarSource.fieldRef":         {allow},
		"EnvVarSource.resourceFieldRef": {allow},
		"EnvVarSource.configMapKeyRef":  {allow},
		"EnvVarSource.secretKeyRef":     secret,
		"EnvVarSource.fileKeyRef":       {allow}, // a file of a volume, which has rules of its own
		"EnvFromSource.prefix":          {allow},
		"EnvFromSource.configMapRef":    {allow},
		"EnvFromSource.secretRef":       secret,

		"ResourceRequirements.limits":   {need(v1alpha1.LoosenDevices).unless(ordinary), need(v1alpha1.LoosenUnlimited).unless(ceiling.covers)},
		"ResourceRequirements.requests": {need(v1alpha1.LoosenDevices).unless(ordinary), need(v1alpha1.LoosenUnlimited).unless(ceiling.covers)},
		"ResourceRequirements.claims":   {need(v1alpha1.LoosenDevices)},

		"Probe.exec":                          {allow}, // runs inside the container
		"Probe.httpGet":                       {fields},
		"Probe.tcpSocket":                     {fields},
		"Probe.grpc":                          {allow}, // has no host
		"Probe.initialDelaySeconds":           {allow},
		"Probe.timeoutSeconds":                {allow},
		"Probe.periodSeconds":                 {allow},
		"Probe.successThreshold":              {allow},
		"Probe.failureThreshold":              {allow},
		"Probe.terminationGracePeriodSeconds": {refuse("a sandbox ends with its claim")},
		"HTTPGetAction.path":                  {allow},
		"HTTPGetAction.port":                  {allow},
		"HTTPGetAction.host":                  {refuse(endpoint)},
		"HTTPGetAction.scheme":                {allow},
		"HTTPGetAction.httpHeaders":           {allow},
		"TCPSocketAction.port":                {allow},
		"TCPSocketAction.host":                {refuse(endpoint)},

		"VolumeMount.name":              {allow},
		"VolumeMount.mountPath":         {allow},
		"VolumeMount.readOnly":          {allow},
		"VolumeMount.recursiveReadOnly": {allow},
		"VolumeMount.subPath":           {allow},
		"VolumeMount.subPathExpr":       {allow},
		"VolumeMount.mountPropagation":  {need(v1alpha1.LoosenPrivilegeEscalation).unless(only(corev1.MountPropagationNone))},

		"Volume.name":                          {allow},
		"Volume.emptyDir":                      {fields},
		"Volume.configMap":                     {allow},
		"Volume.downwardAPI":                   {allow},
		"Volume.image":                         {allow},
		"Volume.projected":                     {fields},
		"Volume.secret":                        secret,
		"Volume.hostPath":                      elsewhere,
		"Volume.persistentVolumeClaim":         elsewhere,
		"Volume.ephemeral":                     elsewhere,
		"Volume.csi":                           elsewhere,
		"Volume.nfs":                           elsewhere,
		"Volume.iscsi":                         elsewhere,
		"Volume.fc":                            elsewhere,
		"Volume.cephfs":                        elsewhere,
		"Volume.rbd":                           elsewhere,
		"Volume.glusterfs":                     elsewhere,
		"Volume.flexVolume":                    elsewhere,
		"Volume.flocker":                       elsewhere,
		"Volume.gitRepo":                       elsewhere,
		"Volume.gcePersistentDisk":             elsewhere,
		"Volume.awsElasticBlockStore":          elsewhere,
		"Volume.azureDisk":                     elsewhere,
		"Volume.azureFile":                     elsewhere,
		"Volume.cinder":                        elsewhere,
		"Volume.photonPersistentDisk":          elsewhere,
		"Volume.portworxVolume":                elsewhere,
		"Volume.quobyte":                       elsewhere,
		"Volume.scaleIO":                       elsewhere,
		"Volume.storageos":                     elsewhere,
		"Volume.vsphereVolume":                 elsewhere,
		"EmptyDirVolumeSource.medium":          {need(v1alpha1.LoosenDevices).unless(only(corev1.StorageMediumMemory))},
		"EmptyDirVolumeSource.sizeLimit":       {need(v1alpha1.LoosenUnlimited).unless(ceiling.holds)},
		"ProjectedVolumeSource.defaultMode":    {allow},
		"ProjectedVolumeSource.sources":        {fields},
		"VolumeProjection.configMap":           {allow},
		"VolumeProjection.downwardAPI":         {allow},
		"VolumeProjection.secret":              secret,
		"VolumeProjection.serviceAccountToken": {need(v1alpha1.LoosenServiceAccountToken)},
		"VolumeProjection.podCertificate":      {need(v1alpha1.LoosenServiceAccountToken)},
		"VolumeProjection.clusterTrustBundle":  {allow}, // public certificates
	}
}

// entry is a key of a map with its value.
type entry struct {
	key   string
	value any
}

func only[T comparable](values ...T) func(any) bool {
	return func(v any) bool {
		t, ok := v.(T)
		return ok && slices.Contains(values, t)
	}
}

func not(harmful func(any) bool) func(any) bool {
	return func(v any) bool { return !harmful(v) }
}

func single(v any) bool {
	list, ok := v.([]corev1.Container)
	return ok && len(list) == 1
}

func atMost(limit int64) func(any) bool {
	return func(v any) bool {
		n, ok := v.(int64)
		return ok && n >= 0 && n <= limit
	}
}

// root reports whether a user, a group or one of the groups is 0.
func root(v any) bool {
	switch v := v.(type) {
	case int64:
		return v == 0
	case []int64:
		return slices.Contains(v, 0)
	}
	return true
}

func systemPriority(v any) bool {
	name, ok := v.(string)
	return !ok || strings.HasPrefix(name, "system-")
}

// ordinary reports whether a resource is one that every node shares out. Others
// are devices.
func ordinary(v any) bool {
	switch corev1.ResourceName(v.(entry).key) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return false
}

// covers reports whether a resource is within the ceiling.
func (c Ceiling) covers(v any) bool {
	e := v.(entry)
	amount, ok := e.value.(resource.Quantity)
	if !ok {
		return false
	}
	switch corev1.ResourceName(e.key) {
	case corev1.ResourceCPU:
		return amount.Cmp(c.CPU) <= 0
	case corev1.ResourceMemory:
		return amount.Cmp(c.Memory) <= 0
	case corev1.ResourceEphemeralStorage:
		return amount.Cmp(c.Storage) <= 0
	}
	return true
}

// holds reports whether a volume's size is within the ceiling.
func (c Ceiling) holds(v any) bool {
	size, ok := v.(resource.Quantity)
	return ok && size.Cmp(c.Storage) <= 0
}

// foreign reports whether a label or annotation is none of ours.
func foreign(v any) bool {
	domain, _, prefixed := strings.Cut(v.(entry).key, "/")
	return !prefixed || domain != v1alpha1.GroupName && !strings.HasSuffix(domain, "."+v1alpha1.GroupName)
}

// plainLabel reports whether a label describes, and makes nobody act: service
// meshes and cloud providers add containers, networks and tokens by labels, and
// container runtimes read annotations such as io.kubernetes.cri-o.Devices.
func plainLabel(v any) bool {
	key := v.(entry).key
	domain, _, prefixed := strings.Cut(key, "/")
	return !prefixed && !strings.Contains(key, ".") || domain == "app.kubernetes.io"
}

// plainAnnotation is plainLabel for annotations.
func plainAnnotation(v any) bool {
	switch key := v.(entry).key; key {
	case "kubectl.kubernetes.io/default-container", "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt":
		return true
	default:
		return plainLabel(v)
	}
}
