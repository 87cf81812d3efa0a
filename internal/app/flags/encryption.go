package flags

import "github.com/spf13/pflag"

// addEncryption adds the flags of encryption at rest.
func (f *Serve) addEncryption(flags *pflag.FlagSet) {
	flags.StringVar(&f.encryption.ConfigFile, "encryption-provider-config", "",
		"file with an EncryptionConfiguration: keys that encrypt stored objects, by resource; the providers are kms (v2, and v1 with the feature gate KMSv1), aescbc, aesgcm, secretbox and identity")
	flags.BoolVar(&f.encryption.Reload, "encryption-provider-config-automatic-reload", false,
		"reload the file of --encryption-provider-config when it changes")
}
