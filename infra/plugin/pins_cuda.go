package plugin

import "github.com/reprise-rl/reprise/infra/wheels"

// The CUDA plugins are those of jaxlib 0.11.2, as the CPU's default is: one XLA. NVIDIA's
// libraries are the newest of CUDA 13.0 and 12.9, which the plugins were built with; cuDNN and
// NCCL are the newest of all. The plugin looks for them in nvidia/ beside jax_plugins/, as
// Python's packages lie. NVSHMEM, which only several machines need, is left out.
var (
	cuda13 = Pin{
		Name:    "cuda13",
		Project: "jax-cuda13-pjrt",
		Version: "0.11.2",
		Wheel:   "e5ff589d43064913bb74027682d89639c7ea48f9f81c2bae6fc75117e913f93e",
		Member:  "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		Digest:  "43d3efd6fd43d8a5d9aa67176e830d81e4ad5fc19fda4ad09cdcc4aebd9f3920",
		Size:    411465856,
		Path:    "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		// Apache-2.0, by its metadata.
		Licences: []string{"jax_cuda13_pjrt-0.11.2.dist-info/METADATA"},
		Libraries: []wheels.Wheel{
			{Project: "nvidia-cublas", Version: "13.0.2.14", Digest: "0cf238ffdbe46c00cb9aa98e7bca745c223a5ca5a53e686ac8b3e5a08fe80d6c"},
			{Project: "nvidia-cuda-cupti", Version: "13.0.85", Digest: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8"},
			{Project: "nvidia-cuda-nvcc", Version: "13.0.88", Digest: "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"},
			{Project: "nvidia-cuda-nvrtc", Version: "13.0.88", Digest: "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"},
			{Project: "nvidia-cuda-runtime", Version: "13.0.96", Digest: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"},
			{Project: "nvidia-cudnn-cu13", Version: "9.28.1.4", Digest: "a54f205b1db1f2895d99f398754db1369816f0569dd459731f925635cf7b65ec"},
			{Project: "nvidia-cufft", Version: "12.0.0.61", Digest: "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3"},
			{Project: "nvidia-cusolver", Version: "12.0.9.81", Digest: "5d28371e1301d1edfb15b8b1201e24cd680bc72de7f384cc162c7edbd8c5348c"},
			{Project: "nvidia-cusparse", Version: "12.6.3.3", Digest: "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b"},
			{Project: "nvidia-nccl-cu13", Version: "2.32.3", Digest: "1459723080ac889d73a26edfa3e04383a7928ab31ac8f0ec43b3ea9548b04ff3"},
			{Project: "nvidia-nvjitlink", Version: "13.0.88", Digest: "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b"},
			{Project: "nvidia-nvvm", Version: "13.0.88", Digest: "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"},
		},
	}
	cuda12 = Pin{
		Name:     "cuda12",
		Project:  "jax-cuda12-pjrt",
		Version:  "0.11.2",
		Wheel:    "2133b3afc63307c016ae4980f166b2b3de199759363ead74f7d550eaae953463",
		Member:   "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
		Digest:   "ed4d60d77427548709ca0b5a8e04c1b24cc0091452bb564e4aea01e03ae7eac1",
		Size:     497519016,
		Path:     "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
		Licences: []string{"jax_cuda12_pjrt-0.11.2.dist-info/METADATA"},
		Libraries: []wheels.Wheel{
			{Project: "nvidia-cublas-cu12", Version: "12.9.3.13", Digest: "d7d51055f161b317c7105ddaae90e71eda059026074ffef93cf7cde2886bfe72"},
			{Project: "nvidia-cuda-cupti-cu12", Version: "12.9.79", Digest: "096bcf334f13e1984ba36685ad4c1d6347db214de03dbb6eebb237b41d9d934f"},
			{Project: "nvidia-cuda-nvcc-cu12", Version: "12.9.86", Digest: "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0"},
			{Project: "nvidia-cuda-nvrtc-cu12", Version: "12.9.86", Digest: "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4"},
			{Project: "nvidia-cuda-runtime-cu12", Version: "12.9.79", Digest: "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3"},
			{Project: "nvidia-cudnn-cu12", Version: "9.28.0.42", Digest: "9ff58b7f36dacd0a93e89f8f2957b52466889217963701daa15e577317cfa375"},
			{Project: "nvidia-cufft-cu12", Version: "11.4.1.4", Digest: "c67884f2a7d276b4b80eb56a79322a95df592ae5e765cf1243693365ccab4e28"},
			{Project: "nvidia-cusolver-cu12", Version: "11.7.5.82", Digest: "15da72d1340d29b5b3cf3fd100e3cd53421dde36002eda6ed93811af63c40d88"},
			{Project: "nvidia-cusparse-cu12", Version: "12.5.10.65", Digest: "73060ce019ac064a057267c585bf1fd5a353734151f87472ff02b2c5c9984e78"},
			{Project: "nvidia-nccl-cu12", Version: "2.32.3", Digest: "bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c"},
			{Project: "nvidia-nvjitlink-cu12", Version: "12.9.86", Digest: "e3f1171dbdc83c5932a45f0f4c99180a70de9bd2718c1ab77d14104f6d7147f9"},
		},
	}
)
